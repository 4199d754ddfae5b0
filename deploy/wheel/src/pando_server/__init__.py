"""The programs of Pando, in a wheel."""

__version__ = "0.1.0"
