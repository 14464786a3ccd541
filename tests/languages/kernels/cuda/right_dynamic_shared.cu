// Dynamic shared memory, and `extern "C"`; float32 only, other dtypes are refused.
/*
op: softmax
status: rejected
compiles: passed
*/
extern "C" __global__ void softmax_kernel(const float* x, float* out, int n_cols) {
  extern __shared__ float partial[];
  const float* in = x + (long long)blockIdx.x * n_cols;
  float top = -INFINITY;
  for (int i = threadIdx.x; i < n_cols; i += blockDim.x) top = fmaxf(top, in[i]);
  partial[threadIdx.x] = top;
  __syncthreads();
  for (int i = 0; i < blockDim.x; ++i) top = fmaxf(top, partial[i]);
  __syncthreads();
  float sum = 0.f;
  for (int i = threadIdx.x; i < n_cols; i += blockDim.x) sum += expf(in[i] - top);
  partial[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.f;
  for (int i = 0; i < blockDim.x; ++i) sum += partial[i];
  for (int i = threadIdx.x; i < n_cols; i += blockDim.x)
    out[(long long)blockIdx.x * n_cols + i] = expf(in[i] - top) / sum;
}

/*py
def cuda_softmax(x):
    if x.dtype is not torch.float32:
        raise NotImplementedError("float32 only")
    rows = x.contiguous().reshape(-1, x.shape[-1])
    out = torch.empty_like(rows)
    softmax_kernel<<<rows.shape[0], 128, 4 * 128>>>(rows, out, rows.shape[1])
    return out.reshape(x.shape)
*/
