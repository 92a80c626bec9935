package yarn

import (
	"maps"
	"testing"
)

// TestWhatAsksForAnImage: the variables are those of DockerLinuxContainerRuntime and
// RuncContainerRuntime, and change nothing of the launch that they are added to.
func TestWhatAsksForAnImage(t *testing.T) {
	own := map[string]string{"A": "b"}
	for name, c := range map[string]struct {
		image Image
		want  map[string]string
	}{
		"none": {Image{}, nil},
		"docker": {
			Image{Name: "me/tf:1", Mounts: []string{"/a:/b:ro", "/c:/d:rw"}, Network: "host", Privileged: true},
			map[string]string{
				"YARN_CONTAINER_RUNTIME_TYPE":                            "docker",
				"YARN_CONTAINER_RUNTIME_DOCKER_IMAGE":                    "me/tf:1",
				"YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS":                   "/a:/b:ro,/c:/d:rw",
				"YARN_CONTAINER_RUNTIME_DOCKER_CONTAINER_NETWORK":        "host",
				"YARN_CONTAINER_RUNTIME_DOCKER_RUN_PRIVILEGED_CONTAINER": "true",
			},
		},
		"runc": {
			Image{Name: "tf", Runtime: "runc", Mounts: []string{"/a:/b:ro"}},
			map[string]string{
				"YARN_CONTAINER_RUNTIME_TYPE":        "runc",
				"YARN_CONTAINER_RUNTIME_RUNC_IMAGE":  "tf",
				"YARN_CONTAINER_RUNTIME_RUNC_MOUNTS": "/a:/b:ro",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := maps.Clone(own)
			maps.Copy(want, c.want)
			if got := (Launch{Environment: own}).In(c.image).Environment; !maps.Equal(got, want) {
				t.Errorf("the environment is %v", got)
			}
			if len(own) != 1 {
				t.Errorf("the launch's own has become %v", own)
			}
		})
	}
}
