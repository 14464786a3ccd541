"""The launch in CUDA C++ lacks an argument.

op: softmax
status: runtime_error
message: divide: it takes 5 arguments (x, sums, out, n, n_cols), the launch has 4
line: 24
"""

import torch

KERNELS = cuda_kernels(r"""
__global__ void divide(const float* x, const float* sums, float* out, long long n, int n_cols) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / sums[i / n_cols];
}
""")


def multi_kernel_softmax(x):
    rows = x.contiguous().reshape(-1, x.shape[-1]).float()
    numerator = torch.exp(rows - rows.amax(-1, keepdim=True))
    out, n = torch.empty_like(numerator), rows.numel()
    sums = numerator.sum(-1)
    KERNELS.divide[cdiv(n, 256), 256](numerator, sums, out, n)
    return out.to(x.dtype).reshape(x.shape)
