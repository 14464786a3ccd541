// Fused: a block for each row, several reductions over it, one output. Here: softmax.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define BLOCK 256

template <typename T>
__global__ void fused_kernel(const T* __restrict__ x, T* out, int n_cols) {
  __shared__ float partial[BLOCK];
  const T* row = x + (long long)blockIdx.x * n_cols;  // an offset may pass 2**31
  T* to = out + (long long)blockIdx.x * n_cols;
  float top = -INFINITY, sum = 0.f;
  for (int i = threadIdx.x; i < n_cols; i += BLOCK) top = fmaxf(top, (float)row[i]);
  partial[threadIdx.x] = top;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + half]);
    __syncthreads();
  }
  top = partial[0];
  __syncthreads();  // before the next reduction writes to the same memory
  for (int i = threadIdx.x; i < n_cols; i += BLOCK) sum += expf((float)row[i] - top);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  sum = partial[0];
  for (int i = threadIdx.x; i < n_cols; i += BLOCK) to[i] = (T)(expf((float)row[i] - top) / sum);
}

/*py
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def cuda_template(x):
    if x.dim() < 1 or x.dtype not in DTYPES:
        raise ValueError(f"x needs a dimension, and one of {DTYPES}")
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        fused_kernel<{ctype(x)}><<<x.numel() // x.shape[-1], BLOCK>>>(x, out, x.shape[-1])
    return out
*/
