"""It returns float32 for every input.

op: softmax
status: wrong_dtype
"""

import torch
from torch.utils.cpp_extension import load_inline

# All versions of this folder but two share one extension, which is built once, without torch's
# headers. Their faults are in its arguments, or in Python.
CPP = """
#include <pybind11/pybind11.h>
#include <cstdint>
void softmax(uintptr_t x, uintptr_t out, long rows, int cols, uintptr_t stream, float shift,
             long behind, int step, bool crash);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax", &softmax); }
"""
CUDA = """
#include <cuda_runtime.h>
#include <cstdint>
__global__ void softmax_kernel(const float* x, float* out, int cols, float shift, long behind,
                               int step) {
  const float* in = x + (long)blockIdx.x * cols;
  float* to = out + (long)blockIdx.x * cols;
  float top = -INFINITY, sum = 0.f;
  for (int i = 0; i < cols; ++i) top = fmaxf(top, in[i]);
  for (int i = 0; i < cols; ++i) sum += expf(in[i + behind] - shift * top);
  for (int i = threadIdx.x; i < cols; i += step) to[i] = expf(in[i] - shift * top) / sum;
}

void softmax(uintptr_t x, uintptr_t out, long rows, int cols, uintptr_t stream, float shift,
             long behind, int step, bool crash) {
  if (crash) *(volatile int*)8 = 1;
  softmax_kernel<<<rows, 128, 0, (cudaStream_t)stream>>>((const float*)x, (float*)out, cols, shift,
                                                         behind, step);
}
"""
extension = load_inline(
    name="softmax_extension", cpp_sources=CPP, cuda_sources=CUDA, no_implicit_headers=True,
)


def softmax(x, shift=1.0, behind=0, step=128, crash=False):
    rows = x.contiguous().reshape(-1, x.shape[-1]).float()
    out = torch.empty_like(rows)
    stream = torch.cuda.current_stream().cuda_stream
    extension.softmax(
        rows.data_ptr(), out.data_ptr(), *rows.shape, stream, shift, behind, step, crash
    )
    return out.to(x.dtype).reshape(x.shape)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return softmax(x.float())
