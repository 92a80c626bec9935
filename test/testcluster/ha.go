package testcluster

import (
	"context"
	"path/filepath"
	"slices"

	"holdfast/test/testcluster/properties"
)

// nameService is HDFS's logical name where it has two NameNodes, nn and nn1.
const nameService = "holdfast"

// standbyProperties make a name service of two NameNodes, which share their
// edits by a directory. There is no ZooWatchdog: Activate decides which one serves.
func (c *Cluster) standbyProperties() properties.Set {
	at := c.at
	return properties.Set{
		"dfs.nameservices":                                  nameService,
		"dfs.ha.namenodes." + nameService:                   "nn,nn1",
		"dfs.namenode.rpc-address." + nameService + ".nn":   at(portNNRPC),
		"dfs.namenode.rpc-address." + nameService + ".nn1":  at(portNN1RPC),
		"dfs.namenode.http-address." + nameService + ".nn":  at(portNNWeb),
		"dfs.namenode.http-address." + nameService + ".nn1": at(portNN1Web),
		"dfs.namenode.shared.edits.dir":                     "file://" + c.sharedEdits(),
		"dfs.client.failover.proxy.provider." + nameService: "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
		"dfs.ha.fencing.methods":                            "shell(true)",
		"dfs.ha.tail-edits.period":                          "1s",
		// One that was restarted stays in safe mode until it knows which of its files
		// were removed since, and it reads only what the other has rolled.
		"dfs.ha.log-roll.period": "5s",
	}
}

// nameNodes are the names of the NameNodes.
func (c *Cluster) nameNodes() []string {
	if c.opts.Standby {
		return []string{"nn", "nn1"}
	}
	return []string{"nn"}
}

func (c *Cluster) sharedEdits() string { return filepath.Join(c.dir, "edits") }

// Activate makes one of a pair of NameNodes (nn, nn1) or of ResourceManagers (rm1,
// rm2) the one that serves. The other NameNode must be on standby or dead.
func (c *Cluster) Activate(ctx context.Context, name string) error {
	if slices.Contains(rmIDs, name) {
		return c.activateRM(ctx, name)
	}
	if _, err := c.Hadoop(ctx, "haadmin", "-transitionToActive", "--forceactive", name); err != nil { // it would ask a dead one for long
		return err
	}
	c.active = name
	return nil
}

// ActiveNameNode is the one of a pair of NameNodes that serves, as far as Activate
// decided it.
func (c *Cluster) ActiveNameNode() *Daemon { return c.Daemon(c.active) }

// activate makes the first one of each pair active, of a cluster that starts:
// ResourceManagers keep their state on HDFS, and NodeManagers register with the
// active one.
func (c *Cluster) activate(ctx context.Context) error {
	if !c.opts.Standby && !c.opts.pair() {
		return nil
	}
	if err := c.ready(ctx, "nn"); err != nil {
		return err
	}
	if c.opts.Standby {
		if err := c.Activate(ctx, "nn"); err != nil {
			return err
		}
	}
	if !c.opts.pair() {
		return nil
	}
	if c.kdc != nil { // where ResourceManagers are not HDFS's superusers
		if err := c.makeDirectory(ctx, directory{rmStore, "700", "rm"}); err != nil {
			return err
		}
	}
	if err := c.ready(ctx, "rm"); err != nil {
		return err
	}
	return c.Activate(ctx, rmIDs[0])
}
