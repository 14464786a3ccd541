"""IO contracts: the arguments, outputs and launch of a kernel as one value that is checked whole.

    from triton_magics.io_contract import IOContractBuilder

    contract = (
        IOContractBuilder()
        .add_input_tensor("x", shape=[1024], dtype="float32", init_kind="randn")
        .add_output_tensor("y", shape=[1024], dtype="float32")
        .add_meta_param("BLOCK_SIZE", value=256)
        .set_launch_config(grid=(4, 1, 1), num_warps=4)
        .build()
    )

`read_contract` reads the JSON form. A contract with faults raises `BadContract`, whose `faults` are
all of them. `io_contract.tensors`, which imports torch, makes the tensors of a contract.
"""

from triton_magics.errors import BadContract
from triton_magics.io_contract.contract import (
    ArgSpec,
    Grid,
    IOContract,
    LaunchConfig,
    find_language_faults,
    read_contract,
)
from triton_magics.io_contract.contract_faults import ContractFault
from triton_magics.io_contract.spec_builders import (
    IOContractBuilder,
    create_arange_spec,
    create_full_spec,
    create_ones_spec,
    create_randn_spec,
    create_tensor_spec,
    create_uniform_spec,
    create_zeros_spec,
)
from triton_magics.io_contract.tensor_spec import TensorData, TensorInit, TensorSpec

__all__ = [
    "ArgSpec",
    "BadContract",
    "ContractFault",
    "Grid",
    "IOContract",
    "IOContractBuilder",
    "LaunchConfig",
    "TensorData",
    "TensorInit",
    "TensorSpec",
    "create_arange_spec",
    "create_full_spec",
    "create_ones_spec",
    "create_randn_spec",
    "create_tensor_spec",
    "create_uniform_spec",
    "create_zeros_spec",
    "find_language_faults",
    "read_contract",
]
