// Matmul: a block for each tile of the output, tiles of a and b in shared memory. Here: a @ b.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define TILE 16

template <typename T>
__global__ void matmul_kernel(const T* __restrict__ a, const T* __restrict__ b, T* out, int M, int N, int K) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; k += TILE) {
    const int a_col = k + threadIdx.x, b_row = k + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] = row < M && a_col < K ? (float)a[(long long)row * K + a_col] : 0.f;
    b_tile[threadIdx.y][threadIdx.x] = b_row < K && col < N ? (float)b[(long long)b_row * N + col] : 0.f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum = fmaf(a_tile[threadIdx.y][i], b_tile[i][threadIdx.x], sum);
    __syncthreads();  // before the next tiles overwrite these
  }
  if (row < M && col < N) out[(long long)row * N + col] = (T)sum;
}

/*py
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def cuda_template(a, b):
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a and b must be [m, k] and [k, n], not {a.shape} and {b.shape}")
    if a.dtype != b.dtype or a.dtype not in DTYPES:
        raise ValueError(f"a and b must have one dtype of {DTYPES}")
    a, b = a.contiguous(), b.contiguous()
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel():
        grid = (cdiv(N, TILE), cdiv(M, TILE))
        matmul_kernel<{ctype(a)}><<<grid, (TILE, TILE)>>>(a, b, out, M, N, K)
    return out
*/
