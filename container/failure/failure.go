// Package failure marks errors with who could do better: another node, or nobody.
package failure

import (
	"errors"
	"io/fs"
	"syscall"

	"holdfast/proto"
)

// marked is an error that says who could do better.
type marked struct {
	error
	node      bool // another node might
	permanent bool // nobody
}

func (m *marked) Unwrap() error { return m.error }

// Node marks an error that is this node's: another one may do without it.
func Node(err error) error { return &marked{error: err, node: true} }

// Permanent marks an error that every node would meet.
func Permanent(err error) error { return &marked{error: err, permanent: true} }

// Store judges an error of a store: what is not there or not permitted
// is so on every node.
func Store(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.ENOTDIR) {
		return Permanent(err)
	}
	return Node(err)
}

// Message is the report of an error to the application master. An error without
// a mark is taken for the node's.
func Message(err error) *proto.AgentFailure {
	f := &proto.AgentFailure{Detail: err.Error()}
	var m *marked
	if errors.As(err, &m) {
		f.NodeSpecific, f.Permanent = m.node, m.permanent
	} else {
		f.NodeSpecific = true
	}
	return f
}
