package frameworks

import (
	"fmt"
	"strconv"
	"strings"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// jax is JAX with several processes. A rank that comes back alone cannot join the
// others, so all begin again together.
var jax = framework.Framework{
	Name: "jax", Title: "JAX",
	Modules:       []string{"jax"},
	Imports:       []string{"jax", "flax"},
	Observers:     observers,
	Rules:         allTogether,
	Defaults:      python,
	Env:           jaxEnv,
	Elastic:       true,
	SavesTogether: jaxSavesTogether,
	Warm:          "jax",
	Failures: framework.Failures{
		Any: []string{"XlaRuntimeError", "JaxRuntimeError", "ValueError"}, // the last is what a failure of gloo becomes
		Phrases: []string{
			`heartbeat timeout`, `\bBarrier timed out`, `tasks? (?:have|has) (?:crashed|died)`, `task .* set to ERROR`, `\bUNAVAILABLE: `,
		},
	},
	Advice: []framework.Advice{{Says: `(?i)RESOURCE_EXHAUSTED: .*(?:GPU|OOM when allocating)`, Do: framework.UseLessDeviceMemory}},
}

// jaxSavesTogether: jax.distributed.initialize has SIGTERM taken by the preemption service
// (jax/_src/distributed.py), unless this variable, read as jax/_src/config.py reads flags,
// says otherwise.
func jaxSavesTogether(spec *proto.JobSpec) bool {
	switch strings.ToLower(spec.Env["JAX_ENABLE_PREEMPTION_SERVICE"]) {
	case "n", "no", "f", "false", "off", "0":
		return false
	}
	return true
}

// jaxEnv returns what jax.distributed.initialize reads; the coordinator is the
// first rank. It reads JAX_COORDINATOR_ADDRESS by itself, and the others by
// runtime/python/_holdfast/jax.py.
func jaxEnv(m framework.Member) map[string]string {
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
