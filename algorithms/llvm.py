"""LLVM, set up once for every kernel: code written at run time becomes functions, without a compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

POINTER, INTEGER = ctypes.c_void_p, ctypes.c_int64


@cache
def binding() -> Any:
    """Return the binding of llvmlite, ready for this machine; None without llvmlite or without pointers of 64 bits."""
    if ctypes.sizeof(POINTER) != 8:
        return None
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def compile_functions(code: str, kinds: Mapping[str, tuple[Any, ...]], *, loops: bool = True) -> dict[str, Any]:
    """Return the functions of a module in LLVM's language. Other threads run while one of them is called.

    Args:
        kinds: name of a function -> the types of its arguments. No function returns a value.
        loops: True to unroll and vectorise loops, which takes time.
    """
    llvm = binding()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )
    module = llvm.parse_assembly(code)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    if not loops:
        options.loop_unrolling = options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _KEPT_ALIVE.append(engine)
    return {name: ctypes.CFUNCTYPE(None, *kind)(engine.get_function_address(name)) for name, kind in kinds.items()}


_KEPT_ALIVE: list[Any] = []
