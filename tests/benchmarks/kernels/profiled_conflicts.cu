__global__ void banks_kernel(const float* x, float* out, long long n) {
  __shared__ float tile[32 * 32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (long long at = (long long)blockIdx.x * 1024; at < n; at += (long long)gridDim.x * 1024) {
    for (int r = warp; r < 32; r += 8) tile[lane * 32 + r] = at + r * 32 + lane < n ? x[at + r * 32 + lane] : 0.f;
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      float v = tile[lane * 32 + ((warp + k) & 31)];
      __syncthreads();
      tile[lane * 32 + ((warp + k) & 31)] = v;
      __syncthreads();
    }
    for (int r = warp; r < 32; r += 8) if (at + r * 32 + lane < n) out[at + r * 32 + lane] = fmaxf(tile[lane * 32 + r], 0.f);
    __syncthreads();
  }
}

/*py
def cuda_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    banks_kernel<<<1056, 256>>>(x, out, x.numel())
    return out
*/
