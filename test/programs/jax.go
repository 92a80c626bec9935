package programs

import (
	"context"

	"holdfast/test/pyenv"
)

var jaxPrograms = []Program{
	orbax("jax-orbax", pyenv.Orbax.Make),
	orbax("jax-orbax-0.8", pyenv.OlderOrbax.Make),
	kerasOnJAX("keras-jax"),
}

// kerasOnJAX is Keras 3's fit, data-parallel, with a checkpoint after each epoch.
func kerasOnJAX(name string) Program {
	p := ranks(name, "keras-jax/train_keras_jax.py", "keras", "worker-1", []string{"keras", "jax"},
		append([]string{"python", "train_keras_jax.py"}, inSteps...)...)
	p.Python, p.OwnNumbers = pyenv.KerasOnJAX.Make, true
	p.Flags = append([]string{"--framework", "jax"}, p.Flags...)
	return p
}

// orbax is data-parallel training, with some JAX.
func orbax(name string, python func(context.Context) (string, error)) Program {
	p := ranks(name, "jax-orbax/train_jax.py", "orbax", "worker-1", []string{"jax", "orbax-checkpoint"},
		append([]string{"python", "train_jax.py"}, inSteps...)...)
	p.Python = python
	return p
}
