"""Stands for TensorFlow: its import prints, and leaves all sorts of things behind."""
import array, ctypes, json, socket  # as frameworks do; the warm interpreter needs them too
import atexit
import fractions  # of the standard library, and nothing has it at the start
import os
import sys
import warnings

from . import deep

value = deep.value + 1
os.environ["SLOWLIB"] = "imported"
os.environ.pop("SLOWLIB_REMOVES", None)
warnings.filterwarnings("ignore", message="nothing in particular")


class Nothing:
    def find_spec(self, name, path=None, target=None):
        return None


sys.meta_path.insert(0, Nothing())
atexit.register(print, "slowlib's farewell")
print("slowlib greets", os.environ.get("SLOWLIB_WITH"))
sys.stderr.write("slowlib warns\n")
# What an import may do that a fork cannot inherit.
exec(os.environ.get("SLOWLIB_DOES", ""))
