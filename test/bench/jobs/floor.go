package jobs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// floor runs tasks under command bare, which does nothing but to get containers
// and to start the script in them, and calls do with the application's id
// meanwhile. It returns when that was submitted.
func (b *Jobs) floor(ctx context.Context, tasks int, m marks, do func(yarn.ApplicationID) error) (submitted time.Time, err error) {
	c, err := conf.Load(b.Cluster.ConfDir())
	if err != nil {
		return submitted, err
	}
	client, err := yarn.NewClient(c, yarn.Options{})
	if err != nil {
		return submitted, err
	}
	defer client.Close()
	submitted = time.Now()
	id, _, err := client.NewApplication(ctx)
	if err != nil {
		return submitted, err
	}
	err = client.Submit(ctx, yarn.Submission{
		ID: id, Name: "bare", MaxAttempts: 2, Master: yarn.Resource{MemoryMB: 256, VCores: 1},
		Launch: yarn.Launch{
			Command:     fmt.Sprintf("exec %s %d %s %s %s", filepath.Join(b.Dir, "bare"), tasks, containerMB, m.script, m.stages()),
			Environment: map[string]string{conf.EnvDir: b.Cluster.ConfDir()},
		},
	})
	if err != nil {
		return submitted, err
	}
	if err := do(id); err != nil {
		return submitted, fmt.Errorf("the least that YARN takes, %s: %w", id, err)
	}
	if err := client.Kill(ctx, id, "measured"); err != nil {
		return submitted, err
	}
	return submitted, b.idle(ctx)
}

// stages is where command bare writes what it has passed.
func (m marks) stages() string { return m.dir + ".stages" }

// bareStages reads that.
func (m marks) bareStages() (passed []*proto.Stage, err error) {
	text, err := os.ReadFile(m.stages())
	for l := range strings.Lines(string(text)) {
		p := &proto.Stage{}
		if _, err := fmt.Sscan(l, &p.Name, &p.AtUnixMs); err != nil {
			return nil, fmt.Errorf("reading the stages that bare passed: %w", err)
		}
		passed = append(passed, p)
	}
	return passed, err
}
