package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
)

// openPages is how many pages of a job are open at a time, and ofTasks how many tasks it has.
const (
	openPages = 10
	ofTasks   = 1000
)

// scale runs command test/scale, which measures an application master with
// ten thousand tasks over a model of a cluster and prints its own figures.
func (b *bench) scale(ctx context.Context) error {
	b.title("One application master with 10,000 tasks")
	return b.runScale(ctx)
}

// pages has it measure the pages of a job.
func (b *bench) pages(ctx context.Context) error {
	b.title("The pages of a job")
	return b.runScale(ctx, "-tasks", strconv.Itoa(ofTasks), "-pages", strconv.Itoa(openPages))
}

func (b *bench) runScale(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(b.dir, "scale"), args...)
	cmd.Stdout = b.Out
	var says bytes.Buffer
	cmd.Stderr = &says
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, says.Bytes())
	}
	return nil
}
