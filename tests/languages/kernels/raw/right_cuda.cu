// A raw CUDA kernel: a thread an element.
/*
op: scaled
status: passed
language: cuda
*/

__global__ void scale(const float* x, float* y, float alpha, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = alpha * x[i];
}
