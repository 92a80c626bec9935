// Package failure marks errors by whether another node might succeed.
package failure

import (
	"errors"
	"io/fs"
	"syscall"

	"holdfast/proto"
)

// marked is an error with that mark.
type marked struct {
	error
	node      bool // another node might
	permanent bool // nobody
}

func (m *marked) Unwrap() error { return m.error }

// Node marks an error that is specific to this node: another one may succeed.
func Node(err error) error { return &marked{error: err, node: true} }

// Permanent marks an error that would occur on every node.
func Permanent(err error) error { return &marked{error: err, permanent: true} }

// Store marks an error of a store: one about a missing file or a permission is permanent.
func Store(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.ENOTDIR) {
		return Permanent(err)
	}
	return Node(err)
}

// Message returns the report of an error to the application master. An error without
// a mark is taken to be the node's.
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
