package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"holdfast/test/testcluster/properties"
)

// The ResourceManager is the daemon rm. Where there are two, they are rm1 and
// rm2, of which one is active; failover is manual, so no ZooWatchdog is needed.

// rmIDs are the ids of a pair of ResourceManagers, and its daemons' names.
var rmIDs = []string{"rm1", "rm2"}

// rmStore, on HDFS, is where a pair of ResourceManagers keeps its state.
const rmStore = "/rmstore"

const rmStoreKey = "yarn.resourcemanager.fs.state-store.uri"

// KeptState is the configuration of a ResourceManager that keeps its state: one
// that is restarted, or takes over, knows its applications, and allocates again
// half a second later, when it has heard of what runs. It keeps it on its own disk:
// on HDFS, what it was to keep while no NameNode answers is never kept, and the
// application's attempt that had ended never ends (FINAL_SAVING).
func KeptState() map[string]string {
	return map[string]string{
		"yarn.resourcemanager.recovery.enabled": "true",
		"yarn.resourcemanager.store.class":      "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
		rmStoreKey:                              "file://${hadoop.tmp.dir}/rmstore",
		"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "500",
	}
}

const rmClass = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"

func (o Options) pair() bool { return o.ResourceManagers == len(rmIDs) }

// rmAddresses are a ResourceManager's, by their properties. The second one's
// ports come after those of the NodeManagers.
func (c *Cluster) rmAddresses(i int) properties.Set {
	at := func(place int) string {
		if i > 0 {
			place += c.portNM(c.opts.NodeManagers) - portRM
		}
		return c.at(place)
	}
	return properties.Set{
		"yarn.resourcemanager.address":                  at(portRM),
		"yarn.resourcemanager.scheduler.address":        at(portRMScheduler),
		"yarn.resourcemanager.resource-tracker.address": at(portRMTracker),
		"yarn.resourcemanager.admin.address":            at(portRMAdmin),
		"yarn.resourcemanager.webapp.address":           at(portRMWeb),
	}
}

// resourceManagers are the properties that say where they are. A pair shares
// its state on HDFS.
func (c *Cluster) resourceManagers() properties.Set {
	if !c.opts.pair() {
		p := c.rmAddresses(0)
		p["yarn.resourcemanager.hostname"] = c.loopback()
		return p
	}
	p := properties.Set{
		"yarn.resourcemanager.cluster-id":                    "holdfast",
		"yarn.resourcemanager.ha.enabled":                    "true",
		"yarn.resourcemanager.ha.rm-ids":                     strings.Join(rmIDs, ","),
		"yarn.resourcemanager.ha.automatic-failover.enabled": "false",
	}
	maps.Copy(p, KeptState())
	p[rmStoreKey] = rmStore
	for i, id := range rmIDs {
		p["yarn.resourcemanager.hostname."+id] = c.loopback()
		for key, address := range c.rmAddresses(i) {
			p[key+"."+id] = address
		}
	}
	return p
}

// rmNames are the daemons' names.
func (c *Cluster) rmNames() []string {
	switch {
	case c.opts.HDFSOnly:
		return nil
	case c.opts.pair():
		return rmIDs
	}
	return []string{"rm"}
}

// rmWeb is the address of a ResourceManager's web server.
func (c *Cluster) rmWeb(name string) string {
	i := 0
	if name == rmIDs[1] {
		i = 1
	}
	return strings.Replace(c.rmAddresses(i)["yarn.resourcemanager.webapp.address"], IPv6Host, "[::1]", 1)
}

// activateRM makes one of a pair of ResourceManagers the active one, whatever the
// other one does, and returns once it is.
func (c *Cluster) activateRM(ctx context.Context, name string) error {
	if _, err := c.Hadoop(ctx, "rmadmin", "-transitionToActive", "--forceactive", name); err != nil {
		return err
	}
	for {
		state, err := c.haState(ctx, name)
		if state == "ACTIVE" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be active: %w (it is %q, %v)", name, ctx.Err(), state, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// haState is what a ResourceManager says of itself: STANDBY, ACTIVE.
func (c *Cluster) haState(ctx context.Context, name string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.rmWeb(name)+"/ws/v1/cluster/info", nil)
	if err != nil {
		return "", err
	}
	resp, err := c.browser.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct {
		ClusterInfo struct{ HAState string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", fmt.Errorf("%s: %w", req.URL, err)
	}
	return answer.ClusterInfo.HAState, nil
}

// rmServes reports whether a ResourceManager does its part: the active one has
// the running NodeManagers, the other stands by.
func (c *Cluster) rmServes(ctx context.Context, name string) (ok bool, detail string) {
	if c.opts.pair() {
		state, err := c.haState(ctx, name)
		if err != nil {
			return false, err.Error()
		}
		if state != "ACTIVE" {
			return state == "STANDBY", "it is " + state
		}
	}
	var rm struct{ NumActiveNMs int }
	if err := jmx(ctx, c.browser, c.rmWeb(name), "Hadoop:service=ResourceManager,name=ClusterMetrics", &rm); err != nil {
		return false, err.Error()
	}
	want := c.running("nm")
	return rm.NumActiveNMs >= want, fmt.Sprintf("%d of %d NodeManagers have registered", rm.NumActiveNMs, want)
}

func (c *Cluster) excludeFile() string { return filepath.Join(c.dir, "excluded") }

// Exclude names the NodeManagers that are out of service from the next
// `rmadmin -refreshNodes` on, in place of those of before.
func (c *Cluster) Exclude(names ...string) error {
	var hosts strings.Builder
	for i := range c.opts.NodeManagers {
		for _, n := range names {
			if n == fmt.Sprintf("nm%d", i) {
				hosts.WriteString(c.nodeHost(i) + "\n")
			}
		}
	}
	if err := os.WriteFile(c.excludeFile(), []byte(hosts.String()), 0o644); err != nil {
		return fmt.Errorf("excluding %v: %w", names, err)
	}
	return nil
}
