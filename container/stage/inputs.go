package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/container/failure"
	"holdfast/container/sandbox"
)

// bytecodeDir is where Python keeps what it has compiled.
const bytecodeDir = "__pycache__"

// isolateInputs prepares for a checkpoint store in place of the working directory: what is
// only a by-product of running the job's files must not go there. Python's compiled files
// stay in the container, and the kernel writes no core files.
func (s *Stage) isolateInputs(box *sandbox.Box) error {
	if err := redirectBytecode(s.work, filepath.Join(s.options.WorkDir, "bytecode")); err != nil {
		return failure.Node(fmt.Errorf("preparing the working directory for checkpoints: %w", err))
	}
	if err := box.DisableCoreFiles(); err != nil {
		return failure.Node(fmt.Errorf("preparing the working directory for checkpoints: %w", err))
	}
	return nil
}

// redirectBytecode makes __pycache__ a link to a directory below local, in dir and in each
// directory below it that has Python files. What is there already is moved.
func redirectBytecode(dir, local string) error {
	redirect := func(in string) error {
		below, err := filepath.Rel(dir, in)
		if err != nil {
			return err
		}
		from, to := filepath.Join(in, bytecodeDir), filepath.Join(local, below, bytecodeDir)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if info, err := os.Lstat(from); err == nil && info.IsDir() {
			if err := os.Rename(from, to); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		err = os.Symlink(to, from)
		if errors.Is(err, fs.ErrExist) {
			return nil // from before
		}
		return err
	}
	if err := redirect(dir); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == bytecodeDir:
			return fs.SkipDir
		case !e.IsDir() && filepath.Ext(at) == ".py":
			return redirect(filepath.Dir(at))
		}
		return nil
	})
}
