package runtime

import (
	"slices"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// frameworks are all that there are, in the order in which they are offered and
// consulted. The last one is for programs of any other kind.
var frameworks = []*framework.Framework{&tensorflow, &pytorch, &torchft, &jax, &horovod, &xgboost, &lightgbm, &ray, &mxnet, &none}

// Frameworks returns all frameworks. The caller must not change them.
func Frameworks() []*framework.Framework { return slices.Clone(frameworks) }

// find returns the framework of a name; nil if there is none.
func find(name string) *framework.Framework {
	for _, f := range frameworks {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// frameworkOf returns the framework of a complete spec.
func frameworkOf(spec *proto.JobSpec) *framework.Framework {
	if f := find(spec.Framework); f != nil {
		return f
	}
	return &none
}
