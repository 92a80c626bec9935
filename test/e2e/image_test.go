package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

const theImage = "registry.example:5000/me/trainer:1"

// TestLongAnImageThatNobodyKnows: NodeManagers with DefaultContainerExecutor run containers
// on the host although an image was asked for. The job does not.
func TestLongAnImageThatNobodyKnows(t *testing.T) {
	plain.enter(t)
	w := where{hadoop(t)}
	for _, flag := range []string{"--image", "--worker-image"} {
		t.Run(flag, func(t *testing.T) {
			j := w.start(t, t.TempDir(), "--worker", "1", flag, theImage, "--", "true")
			s := j.end(long, proto.JobState_JOB_STATE_FAILED)
			for _, want := range []string{theImage, "LinuxContainerExecutor", "docker"} {
				if !strings.Contains(s.Why, want) {
					t.Errorf("%q is not in why the job failed: %s", want, s.Why)
				}
			}
		})
	}
}

// imageCluster has NodeManagers with LinuxContainerExecutor and what stands for its native
// program, which is also returned: what it writes has names that begin with its own.
func imageCluster(t *testing.T, runtimes string) (*testcluster.Cluster, string) {
	t.Helper()
	text, err := os.ReadFile("testdata/container-executor")
	must(t, err)
	executor := filepath.Join(t.TempDir(), "container-executor")
	must(t, os.WriteFile(executor, text, 0o755))
	const lce, linux = "yarn.nodemanager.linux-container-executor.", "yarn.nodemanager.runtime.linux."
	return testcluster.ForTest(t, testcluster.Options{DataNodes: 1, NodeManagers: 1, Conf: map[string]string{
		"yarn.nodemanager.container-executor.class": "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor",
		lce + "path":                       executor,
		lce + "group":                      "root",
		lce + "nonsecure-mode.limit-users": "false",
		linux + "docker.userremapping-uid-threshold":                          "0",
		linux + "docker.userremapping-gid-threshold":                          "0",
		linux + "allowed-runtimes":                                            runtimes,
		linux + "docker.privileged-containers.allowed":                        "true",
		linux + "docker.privileged-containers.acl":                            "*",
		"yarn.nodemanager.linux-container-executor.nonsecure-mode.local-user": "root",
	}}), executor
}

// TestLongARuntimeThatIsNotAllowed: LinuxContainerExecutor refuses what
// yarn.nodemanager.runtime.linux.allowed-runtimes does not name.
func TestLongARuntimeThatIsNotAllowed(t *testing.T) {
	daemons.enter(t)
	c, _ := imageCluster(t, "default")
	w := where{c}
	for _, flag := range []string{"--image", "--worker-image"} {
		t.Run(flag, func(t *testing.T) {
			j := w.start(t, t.TempDir(), "--worker", "1", flag, theImage, "--", "true")
			s := j.end(long, proto.JobState_JOB_STATE_FAILED)
			if !strings.Contains(s.Why, "allowed-runtimes") {
				t.Errorf("the job failed: %s", s.Why)
			}
		})
	}
}

// TestLongAJobInAnImage: application master and tasks of a job run in the image that it names,
// with its mounts. Where /dev/fuse is missing there, a job with checkpoints on HDFS says so
// and what to do; in privileged containers, they are mounted.
func TestLongAJobInAnImage(t *testing.T) {
	daemons.enter(t)
	c, executor := imageCluster(t, "default,docker")
	w := where{c}
	data := t.TempDir()
	must(t, os.WriteFile(filepath.Join(data, "given"), []byte("from the node\n"), 0o644))

	j := w.start(t, t.TempDir(), "--worker", "1", "--image", theImage, "--image-mounts", data+":/data", "--",
		"sh", "-c", "cat /image /data/given; ls /dev/fuse; touch /data/x; true")
	j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	said := j.logs("worker-0")
	for _, want := range []string{theImage, "from the node", "/dev/fuse': No such file", "/data/x': Read-only"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in what the task printed:\n%s", want, said)
		}
	}
	asked := dockerCommands(t, executor)
	if len(asked) != 2 { // of application master and agent
		t.Errorf("Docker ran %d containers", len(asked))
	}
	for _, command := range asked {
		for _, want := range []string{"image=" + theImage, "net=host", data + ":/data:ro"} {
			if !strings.Contains(command, want) {
				t.Errorf("%q is not in the command for Docker:\n%s", want, command)
			}
		}
	}

	store := c.HDFS() + "/user/root/image"
	save := []string{"--worker", "1", "--worker-image", theImage, "--checkpoint", "logs=" + store, "--", "sh", "-c", "echo saved >logs/x"}
	s := w.start(t, t.TempDir(), save...).end(long, proto.JobState_JOB_STATE_FAILED)
	for _, want := range []string{"FUSE", theImage, "--image-privileged"} {
		if !strings.Contains(s.Why, want) {
			t.Errorf("%q is not in why the job failed: %s", want, s.Why)
		}
	}
	w.start(t, t.TempDir(), append([]string{"--image-privileged"}, save...)...).end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	if text, err := c.Hadoop(t.Context(), "fs", "-cat", store+"/x"); err != nil || text != "saved\n" {
		t.Errorf("on HDFS is %q, %v", text, err)
	}

	out, errs, _ := w.call(t.Context(), "", "doctor", "--cluster", "--image", theImage)
	for _, want := range []string{" image,", "FUSE is not allowed here"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what doctor says:\n%s\n%s", want, out, errs)
		}
	}
}

// dockerCommands returns the commands that the NodeManager wrote for Docker.
func dockerCommands(t *testing.T, executor string) (list []string) {
	t.Helper()
	files, err := filepath.Glob(executor + ".docker/*")
	must(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		list = append(list, string(text))
	}
	return list
}
