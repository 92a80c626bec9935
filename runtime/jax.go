package runtime

import (
	"fmt"
	"strconv"
)

// jax is JAX with several processes. A rank that comes back alone cannot join the
// others, so all begin again together.
var jax = Framework{
	Name: "jax", Title: "JAX",
	Modules:   []string{"jax"},
	Imports:   []string{"jax", "flax"},
	Observers: observers,
	Rules:     allTogether,
	Defaults:  python,
	Env:       jaxEnv,
	Elastic:   true,
	Warm:      "jax",
	Failures: Failures{
		Any: []string{"XlaRuntimeError", "JaxRuntimeError"},
		Phrases: []string{
			`heartbeat timeout`, `tasks? (?:have|has) (?:crashed|died)`, `task .* set to ERROR`, `\bUNAVAILABLE: `,
		},
	},
	Advice: []Advice{{`(?i)RESOURCE_EXHAUSTED: .*(?:GPU|OOM when allocating)`, useLessDeviceMemory}},
}

// jaxEnv returns what jax.distributed.initialize reads; the coordinator is the
// first rank. It reads JAX_COORDINATOR_ADDRESS by itself, and the others by
// python/_holdfast/jax.py.
func jaxEnv(m Member) map[string]string {
	if m.Observer {
		return nil
	}
	first := m.Members[0]
	return map[string]string{
		"JAX_COORDINATOR_ADDRESS": fmt.Sprintf("%s:%d", first.Host, first.Port),
		"JAX_NUM_PROCESSES":       strconv.Itoa(m.World()),
		"JAX_PROCESS_ID":          strconv.Itoa(m.Rank),
	}
}
