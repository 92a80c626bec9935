package frameworks

import (
	"holdfast/proto"
	"holdfast/runtime/framework"
)

// None is for programs of no framework, or of one that is not known. A role ps
// serves the others, as it does everywhere.
var None = framework.Framework{
	Name: "none",
	Rules: func(_ *proto.JobSpec, role string) (proto.LossRule, proto.CompletionRule) {
		if role == "ps" {
			return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_SERVICE
		}
		return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_REQUIRED
	},
}
