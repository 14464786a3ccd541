// A raw CUDA kernel: one element behind its output.
/*
op: scaled
status: out_of_bounds
language: cuda
*/

__global__ void scale(const float* x, float* y, float alpha, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = alpha * x[i];
  if (i == n) y[i] = 0.0f;
}
