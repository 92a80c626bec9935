package programs

import "holdfast/test/pyenv"

var horovodPrograms = []Program{horovod("horovod", "worker-0")}

// horovod is all-reduce by Horovod. The rank that is lost serves the rendezvous, or another.
func horovod(name, victim string) Program {
	p := ranks(name, "horovod/train_horovod.py", "torch", victim, []string{"horovod", "torch"},
		append([]string{"python", "train_horovod.py"}, inSteps...)...)
	p.Python = pyenv.Horovod
	return p
}
