"""A row a block, as an extension of torch.

op: softmax
status: passed
"""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <c10/cuda/CUDAStream.h>

__global__ void softmax_kernel(const float* x, float* out, int n_cols) {
  const float* in = x + (long long)blockIdx.x * n_cols;
  float* to = out + (long long)blockIdx.x * n_cols;
  float top = -INFINITY, sum = 0.f;
  for (int i = 0; i < n_cols; ++i) top = fmaxf(top, in[i]);
  for (int i = 0; i < n_cols; ++i) sum += expf(in[i] - top);
  for (int i = threadIdx.x; i < n_cols; i += blockDim.x) to[i] = expf(in[i] - top) / sum;
}

torch::Tensor softmax(torch::Tensor x) {
  auto out = torch::empty_like(x);
  auto stream = c10::cuda::getCurrentCUDAStream();
  softmax_kernel<<<x.size(0), 128, 0, stream>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
  return out;
}
"""
extension = load_inline(
    name="softmax_extension", cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources=CUDA, functions=["softmax"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows = x.contiguous().reshape(-1, x.shape[-1]).float()
        return extension.softmax(rows).to(x.dtype).reshape(x.shape)
