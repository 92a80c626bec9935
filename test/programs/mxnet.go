package programs

import "holdfast/test/pyenv"

// MXNet with a server, by whose loss all start again as by a worker's.
var mxnetPrograms = []Program{mxnet("mxnet", "worker-0"), mxnet("mxnet-server", "server-0")}

func mxnet(name, victim string) Program {
	p := ranks(name, "mxnet/train_mxnet.py", "mxnet", victim, []string{"mxnet"},
		append([]string{"python", "train_mxnet.py"}, inSteps...)...)
	p.Python = pyenv.MXNet
	p.Flags = append([]string{"--framework", "mxnet", "--role", "server=1", "--server-memory", "768m"}, twoRanks...)
	return p
}
