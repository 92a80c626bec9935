package checkpoints

import (
	"strings"
	"testing"

	"holdfast/client"
	"holdfast/internal/hadoop/conf"
)

// TestLocalPathThatIsOnHDFS: a path without a scheme is local, and who means
// HDFS is told how to say so.
func TestLocalPathThatIsOnHDFS(t *testing.T) {
	for _, configured := range []string{"", t.TempDir()} {
		t.Setenv(conf.EnvDir, configured)
		_, err := Directories(t.Context(), "/user/none/logs", nil)
		if hint := err != nil && strings.Contains(err.Error(), "hdfs:///user/none/logs"); client.ExitCode(err) != client.ExitUsage || hint != (configured != "") {
			t.Errorf("with %s=%q: %v", conf.EnvDir, configured, err)
		}
	}
}
