package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// scale runs command test/scale, which measures an application master with
// ten thousand tasks over a model of a cluster and prints its own figures.
func (b *bench) scale(ctx context.Context) error {
	b.title("One application master with 10,000 tasks")
	cmd := exec.CommandContext(ctx, filepath.Join(b.dir, "scale"))
	cmd.Stdout = b.Out
	var says bytes.Buffer
	cmd.Stderr = &says
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, says.Bytes())
	}
	return nil
}
