package yarn

import (
	"fmt"
	"maps"
	"os"
	"strings"
)

// Runtimes are the names of NodeManagers' container runtimes that run images
// (yarn.nodemanager.runtime.linux.allowed-runtimes). The first is the default.
var Runtimes = []string{"docker", "runc"}

// Image is the container image in which a NodeManager is to run a container. The zero
// value asks for none. A NodeManager heeds it only with LinuxContainerExecutor:
// DefaultContainerExecutor runs the container on the host without a word, which the
// container finds out by CheckImage.
type Image struct {
	Name    string
	Runtime string   // one of Runtimes; empty: the first
	Mounts  []string // SOURCE:DESTINATION:MODE each; the node has a list of those it allows
	Network string   // docker only; empty: the node's default
	// Privileged gives the container all capabilities and devices, where the node allows
	// it to the user.
	Privileged bool
}

// ImageSettings are a job's.
type ImageSettings interface {
	GetImageRuntime() string
	GetImageMounts() []string
	GetImageNetwork() string
	GetImagePrivileged() bool
}

// ImageOf returns an image with the settings of a job.
func ImageOf(name string, job ImageSettings) Image {
	return Image{
		Name: name, Runtime: job.GetImageRuntime(), Mounts: job.GetImageMounts(),
		Network: job.GetImageNetwork(), Privileged: job.GetImagePrivileged(),
	}
}

// ExitInvalid is the exit status of a container that its NodeManager did not start
// (ContainerExitStatus.INVALID): of one in an image also where the runtime is not allowed,
// which it tells to its log only.
const ExitInvalid = -1000

const (
	envRuntime = "YARN_CONTAINER_RUNTIME_TYPE"
	envImage   = "_IMAGE"
)

func envPrefix(runtime string) string { return "YARN_CONTAINER_RUNTIME_" + strings.ToUpper(runtime) }

// environment returns the variables of a launch context that ask for the image
// (OCIContainerRuntime and its subclasses).
func (i Image) environment() map[string]string {
	runtime := i.Runtime
	if runtime == "" {
		runtime = Runtimes[0]
	}
	prefix := envPrefix(runtime)
	env := map[string]string{envRuntime: runtime, prefix + envImage: i.Name}
	if len(i.Mounts) > 0 {
		env[prefix+"_MOUNTS"] = strings.Join(i.Mounts, ",")
	}
	if i.Network != "" {
		env[prefix+"_CONTAINER_NETWORK"] = i.Network
	}
	if i.Privileged {
		env[prefix+"_RUN_PRIVILEGED_CONTAINER"] = "true"
	}
	return env
}

// In returns a copy of the launch that asks for an image.
func (l Launch) In(i Image) Launch {
	if i.Name == "" {
		return l
	}
	env := i.environment()
	maps.Copy(env, l.Environment)
	l.Environment = env
	return l
}

// AskedImage returns the image in which this process's container was to run; empty: none.
func AskedImage() string { return os.Getenv(envPrefix(os.Getenv(envRuntime)) + envImage) }

// CheckImage returns an error if this process was to run in an image and runs on the host.
// It is for the process that a container's command replaces itself by (exec): in an image,
// that or its parent is the first of a PID namespace, and on the host its parent is the
// NodeManager's script.
func CheckImage() error {
	name := AskedImage()
	if name == "" || os.Getpid() == 1 || os.Getppid() == 1 {
		return nil
	}
	return fmt.Errorf("the container was to run in the image %s, and the NodeManager of %s runs it on the host itself, as one does that knows no images: have yarn.nodemanager.container-executor.class set to LinuxContainerExecutor there, with %[3]s in yarn.nodemanager.runtime.linux.allowed-runtimes, or submit the job without an image",
		name, os.Getenv("NM_HOST"), os.Getenv(envRuntime))
}
