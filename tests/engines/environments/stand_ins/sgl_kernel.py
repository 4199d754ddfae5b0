"""Stands in for SGLang's CPU kernels, which no package registry has.

SGLang imports names from `sgl_kernel`; with the options that these tests use it
calls none of them. A call says which kernel is missing.
"""


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_args, **_kwargs):
        raise NotImplementedError(f"sgl_kernel.{name} is a stand-in")

    missing.__name__ = name
    return missing
