// A float pointer gets half precision.
/*
op: softmax
status: runtime_error
compiles: compile_error
message: softmax_kernel: x: float* gets a tensor of torch.float16
*/
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define BLOCK 256

// One block per row; float32 inside.
template <typename T>
__global__ void __launch_bounds__(BLOCK) softmax_kernel(const T* __restrict__ x, T* out, int n_cols) {
  __shared__ float partial[BLOCK];
  const long long row = blockIdx.x;
  const T* in = x + row * n_cols;
  float top = -INFINITY;
  for (int i = threadIdx.x; i < n_cols; i += BLOCK) top = fmaxf(top, (float)in[i]);
  partial[threadIdx.x] = top;
  __syncthreads();
  for (int s = BLOCK / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + s]);
    __syncthreads();
  }
  top = partial[0];
  __syncthreads();
  float sum = 0.f;
  for (int i = threadIdx.x; i < n_cols; i += BLOCK) sum += expf((float)in[i] - top);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int s = BLOCK / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  sum = partial[0];
  for (int i = threadIdx.x; i < n_cols; i += BLOCK) out[row * n_cols + i] = (T)(expf((float)in[i] - top) / sum);
}

/*py
def cuda_softmax(x):
    rows = x.half().contiguous().reshape(-1, x.shape[-1])
    out = torch.empty_like(rows)
    softmax_kernel<float><<<rows.shape[0], BLOCK>>>(rows, out, rows.shape[1])
    return out.reshape(x.shape)
*/
