// Package frameworks has all frameworks that are known: one framework.Framework for each, in a
// file of its own. frameworks.go has the list of them, shared.go what several have in common, and
// launchers.go the launchers of PyTorch; nothing outside names one of them to decide by it.
package frameworks

import (
	"holdfast/proto"
	"holdfast/runtime/framework"
)

// All are the frameworks, in the order in which they are offered and consulted. The last one is
// for programs of any other kind. It is changed by tests only.
var All = []*framework.Framework{&tensorflow, &pytorch, &torchft, &jax, &horovod, &xgboost, &lightgbm, &ray, &mxnet, &None}

// Named returns the framework of a name; nil if there is none.
func Named(name string) *framework.Framework {
	for _, f := range All {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Of returns the framework of a complete spec.
func Of(spec *proto.JobSpec) *framework.Framework {
	if f := Named(spec.Framework); f != nil {
		return f
	}
	return &None
}
