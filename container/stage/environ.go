package stage

import (
	"os"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited are the variables that a task gets from its container's
// environment; a name that ends in * is a prefix. The rest, Hadoop's and Holdfast's, is not
// passed on.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM",
	"LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME",
	"CUDA_*", "NVIDIA_*", "ROCR_*", "HIP_*",
	"MALLOC_ARENA_MAX",
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// tokenVariable names the credentials file to Hadoop's programs.
const tokenVariable = "HADOOP_TOKEN_FILE_LOCATION"

// environment makes a task's environment: what it inherits, then tmp as its
// TMPDIR and its own credentials file, then what the AM gave. python directories
// go in front of PYTHONPATH. home is the task's HOME if the inherited one is not a writable
// directory, as is usual on YARN.
func environment(base []string, given map[string]string, tmp, home, tokens string, python []string) []string {
	env := map[string]string{}
	for _, kv := range base {
		name, v, ok := strings.Cut(kv, "=")
		if !ok {
			continue
		}
		for _, p := range inherited {
			if prefix, many := strings.CutSuffix(p, "*"); name == p || many && strings.HasPrefix(name, prefix) {
				env[name] = v
			}
		}
	}
	if env["PATH"] == "" {
		env["PATH"] = defaultPath
	}
	if dir := env["HOME"]; dir == "" || unix.Access(dir+"/.", unix.W_OK|unix.X_OK) != nil {
		env["HOME"] = home
	}
	if tmp != "" {
		env["TMPDIR"] = tmp
	}
	if tokens != "" {
		env[tokenVariable] = tokens
	}
	for name, v := range given {
		env[name] = v
	}
	if len(python) > 0 {
		path := strings.Join(python, string(os.PathListSeparator))
		if old := env["PYTHONPATH"]; old != "" {
			path += string(os.PathListSeparator) + old
		}
		env["PYTHONPATH"] = path
	}
	list := make([]string, 0, len(env))
	for name, v := range env {
		list = append(list, name+"="+v)
	}
	sort.Strings(list)
	return list
}
