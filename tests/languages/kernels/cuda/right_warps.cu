// Four rows a block, a warp each, with shuffles.
/*
op: softmax
status: passed
compiles: passed
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define ROWS 4

template <typename T>
__global__ void softmax_kernel(const T* __restrict__ x, T* out, long long n_rows, int n_cols) {
  const long long row = (long long)blockIdx.x * ROWS + threadIdx.y;
  if (row >= n_rows) return;
  float top = -INFINITY, sum = 0.f;
  for (int i = threadIdx.x; i < n_cols; i += 32) top = fmaxf(top, (float)x[row * n_cols + i]);
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
  for (int i = threadIdx.x; i < n_cols; i += 32) sum += expf((float)x[row * n_cols + i] - top);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  for (int i = threadIdx.x; i < n_cols; i += 32)
    out[row * n_cols + i] = (T)(expf((float)x[row * n_cols + i] - top) / sum);
}

/*py
def cuda_softmax(x):
    rows = x.contiguous().reshape(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    softmax_kernel<{ctype(x)}><<<cdiv(n_rows, ROWS), (32, ROWS)>>>(rows, out, n_rows, n_cols)
    return out.reshape(x.shape)
*/
