package nodecheck

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"holdfast/container/gpu"
	"holdfast/doctor/check"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/nodump"
)

// Examine runs in a container: it checks the node that it is on, and writes the
// findings to the check's directory. If it cannot, it writes what is not well to stderr
// and fails. It shuts this process's memory (package nodump) before it calls configuration,
// which reads what came with the container, tokens too.
func Examine(ctx context.Context, exe string, configuration func() (*conf.Conf, error), stderr io.Writer) error {
	tried := check.Sandbox(ctx, exe)
	if err := nodump.Protect(); err != nil {
		return err
	}
	c, err := configuration()
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	found := []check.Finding{
		check.System(),
		check.User(os.Getenv(EnvUser), c.Secure()),
		check.Directory("container's directory", dir),
		check.Directory("/tmp", "/tmp"),
		check.Closed(dir),
	}
	if name := yarn.AskedImage(); name != "" {
		found = append(found, check.Image(name, yarn.CheckImage()))
	}
	for _, d := range strings.Split(os.Getenv("LOCAL_DIRS"), ",") { // set by every NodeManager
		if d != "" {
			found = append(found, check.Directory("local directory", d))
		}
	}
	found = append(found, tried...)
	found = append(found, check.SELinux(), check.Filtered(), check.Rlimits(), check.Memory(Container.MemoryMB), check.GPUs(gpu.Here), check.Python(ctx))
	if proxies, err := c.WebProxies(); err == nil && !proxies.Alone {
		found = append(found, check.Clock(ctx, proxies.URLs))
	}
	container := os.Getenv("CONTAINER_ID")
	ckptStore, err := store.Open(ctx, os.Getenv(EnvDirectory), c)
	if err == nil {
		defer ckptStore.Close()
		found = append(found, check.Store(ctx, ckptStore, path.Join(nodesDir, container+".sample")))
		var text []byte
		if text, err = json.Marshal(found); err == nil {
			err = store.WriteFile(ctx, ckptStore, path.Join(nodesDir, container+".json"), text, 0o600)
		}
	}
	if err == nil {
		return nil
	}
	found = append(found, check.Finding{Subject: "HDFS", Level: check.Bad, Text: err.Error()})
	return brief(stderr, found)
}

// brief writes what is not well, as the end of stderr alone is passed on.
func brief(stderr io.Writer, found []check.Finding) error {
	var ill []check.Finding
	for _, f := range found {
		if f.Level != check.Good {
			ill = append(ill, f)
		}
	}
	text, err := json.Marshal(ill)
	if err == nil {
		_, err = fmt.Fprintf(stderr, "%s\n", text)
	}
	if err == nil {
		err = fmt.Errorf("the findings could not be written to %s", os.Getenv(EnvDirectory))
	}
	return err
}
