// A raw CUDA kernel: the last thread of each block does nothing.
/*
op: scaled
status: wrong_values
language: cuda
*/

__global__ void scale(const float* x, float* y, float alpha, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && threadIdx.x < blockDim.x - 1) y[i] = alpha * x[i];
}
