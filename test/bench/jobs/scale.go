package jobs

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

// Scale runs command test/scale, which measures an application master with
// ten thousand tasks over a model of a cluster and prints its own figures.
func (b *Jobs) Scale(ctx context.Context) error {
	b.Title("One application master with 10,000 tasks")
	return b.runScale(ctx)
}

// Pages has it measure the pages of a job.
func (b *Jobs) Pages(ctx context.Context) error {
	b.Title("The pages of a job")
	return b.runScale(ctx, "-tasks", strconv.Itoa(ofTasks), "-pages", strconv.Itoa(openPages))
}

func (b *Jobs) runScale(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(b.Dir, "scale"), args...)
	cmd.Stdout = b.Out
	var says bytes.Buffer
	cmd.Stderr = &says
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, says.Bytes())
	}
	return nil
}
