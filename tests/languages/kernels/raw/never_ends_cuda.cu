// A raw CUDA kernel: its loop has no step.
/*
op: scaled
status: timeout
language: cuda
*/

__global__ void scale(const float* x, float* y, float alpha, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  volatile float* out = y;
  while (n > 0) out[i % n] = alpha * x[i % n];
}
