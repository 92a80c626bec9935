package programs

import "holdfast/test/pyenv"

// torchftPrograms lose a replica group, while the other goes on, and the lighthouse. With that
// torchft 0.2.0 may end a group, too: a new lighthouse counts quorums from the beginning, and
// the groups' stores have what they wrote there for those of the same numbers.
var torchftPrograms = []Program{
	goesOn(torchft("torchft-replica", "replica-1", "bin/torchrun")),
	torchft("torchft-lighthouse", "lighthouse-0", "python"),
}

func goesOn(p Program) Program {
	p.GoOn = true
	return p
}

// torchft is two replica groups, which torchrun starts or Holdfast does.
func torchft(name, victim, starts string) Program {
	return Program{
		Name: name, Packages: []string{"torchft", "torch"}, Python: pyenv.NewestTorch, Files: []string{"torchft/train_torchft.py"},
		Flags:   []string{"--replica", "1..2", "--replica-memory", "1800m", "--lighthouse", "1", "--lighthouse-memory", "500m"},
		Command: append([]string{starts, "train_torchft.py"}, "--steps", "600", "--save_steps", "20", "--step_secs", "0.1"),
		Path:    "./train_logs", Format: "torch", Step: step, Victim: victim,
	}
}
