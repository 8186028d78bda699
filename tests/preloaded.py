"""The last imports of the parent of all forked parties: objects that each party would make for itself.

The collector leaves all that the parties share untouched, and so unwritten.
"""

import gc
from functools import cache

import typer.main

from blindfit.algorithms.paillier.vector_unit.unit import vector_unit
from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.scoring import FLATTENED_BY
from blindfit.algorithms.sharing.waves import CHOICES
from blindfit.coordinator.cli.main import app
from tests import fork_server, quick_points

typer.main.get_command = cache(typer.main.get_command)  # a command of each function of the command line
typer.main.get_command(app)
vector_unit((1 << 2048) - 1)  # machine code for products mod the square of any key
field.kernel()
for waves in CHOICES.values():
    _made = waves.log_cosh, waves.flat_sigmoid(FLATTENED_BY)
quick_points.take_the_place()
fork_server.start_none()  # a forked party's processes are forked from here too
gc.collect()
gc.freeze()
gc.enable()
