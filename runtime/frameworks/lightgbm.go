package frameworks

import (
	"fmt"
	"strconv"
	"strings"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// lightgbm is LightGBM with several machines, which talk by sockets. None of them notices
// that another was lost, so all begin again together.
var lightgbm = framework.Framework{
	Name: "lightgbm", Title: "LightGBM",
	Modules:      []string{"lightgbm"},
	Commands:     []string{"lightgbm"},
	Imports:      []string{"lightgbm"},
	Precedence:   framework.Yields,
	Observers:    observers,
	Rules:        allTogether,
	Check:        checkLightGBM,
	Defaults:     python,
	Env:          lightgbmEnv,
	Placeholders: func(m framework.Member) map[string]string { return map[string]string{"machines": machines(m)} },
	Failures: framework.Failures{
		Any:     []string{"LightGBMError"},
		Phrases: []string{`Connecting to rank \d+ failed`, `Socket (?:send|recv|accept) error`},
	},
	Advice: []framework.Advice{{
		Says: `Machine list file doesn't contain the local machine`,
		Do:   "LightGBM finds a machine's rank by an address of its own: leave the parameter machines out, or give it what LIGHTGBM_MACHINES or {machines} says, with local_listen_port={port}.",
	}},
}

// lightgbmEnv returns the values of LightGBM's parameters machines, num_machines and
// local_listen_port. It has no environment variables of its own: runtime/python/_holdfast/lightgbm.py
// has the parameters from these, and programs may.
func lightgbmEnv(m framework.Member) map[string]string {
	if m.Observer {
		return nil
	}
	return map[string]string{
		"LIGHTGBM_MACHINES":          machines(m),
		"LIGHTGBM_NUM_MACHINES":      strconv.Itoa(len(m.Members)),
		"LIGHTGBM_LOCAL_LISTEN_PORT": strconv.Itoa(m.Ports[m.Task.Name]),
	}
}

// machines is LightGBM's parameter of that name: the ranks' addresses, as numbers, in
// order. LightGBM takes for its own rank that with an address of a network interface, and
// the port on which it listens (Linkers in src/network/linkers_socket.cpp).
func machines(m framework.Member) string {
	list := make([]string, len(m.Members))
	for i, p := range m.Members {
		address := p.Virtual
		if p.Task == m.Task {
			address = "127.0.0.1"
		}
		list[i] = fmt.Sprintf("%s:%d", address, p.Port)
	}
	return strings.Join(list, ",")
}

func checkLightGBM(spec *proto.JobSpec) error {
	for _, r := range spec.Roles {
		if _, observer := observers[r.Name]; !observer && r.Processes > 1 {
			return fmt.Errorf("LightGBM knows each process by an address of its own, and the %d processes of a %s would share one; use more tasks instead, as in --%s %d", r.Processes, r.Name, r.Name, r.Count*r.Processes)
		}
	}
	return nil
}
