package programs

import (
	"context"

	"holdfast/test/pyenv"
)

var jaxPrograms = []Program{
	orbax("jax-orbax", pyenv.Orbax.Make),
	orbax("jax-orbax-0.8", pyenv.OlderOrbax.Make),
}

// orbax is data-parallel training, with some JAX.
func orbax(name string, python func(context.Context) (string, error)) Program {
	p := ranks(name, "jax-orbax/train_jax.py", "orbax", "worker-1", []string{"jax", "orbax-checkpoint"},
		append([]string{"python", "train_jax.py"}, inSteps...)...)
	p.Python = python
	return p
}
