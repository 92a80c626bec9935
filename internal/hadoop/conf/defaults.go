package conf

// defaults are those of core-default.xml, hdfs-default.xml and yarn-default.xml
// that this program reads.
var defaults = map[string]string{
	"fs.defaultFS":                                          "file:///",
	"hadoop.security.authentication":                        "simple",
	"hadoop.rpc.protection":                                 "authentication",
	"dfs.blocksize":                                         "134217728",
	"dfs.replication":                                       "3",
	"dfs.bytes-per-checksum":                                "512",
	"dfs.client-write-packet-size":                          "65536",
	"dfs.encrypt.data.transfer":                             "false",
	"dfs.client.use.datanode.hostname":                      "false",
	"yarn.resourcemanager.hostname":                         "0.0.0.0",
	"yarn.resourcemanager.address":                          "${yarn.resourcemanager.hostname}:8032",
	"yarn.resourcemanager.scheduler.address":                "${yarn.resourcemanager.hostname}:8030",
	"yarn.resourcemanager.admin.address":                    "${yarn.resourcemanager.hostname}:8033",
	"yarn.resourcemanager.webapp.address":                   "${yarn.resourcemanager.hostname}:8088",
	"yarn.resourcemanager.webapp.https.address":             "${yarn.resourcemanager.hostname}:8090",
	"yarn.resourcemanager.ha.enabled":                       "false",
	"yarn.resourcemanager.am.max-attempts":                  "2",
	"yarn.http.policy":                                      "HTTP_ONLY",
	"yarn.nm.liveness-monitor.expiry-interval-ms":           "600000",
	"yarn.am.liveness-monitor.expiry-interval-ms":           "600000",
	"yarn.nodemanager.remote-app-log-dir":                   "/tmp/logs",
	"yarn.resourcemanager.system-metrics-publisher.enabled": "false",
}

// renamed gives the present name of properties by their deprecated one, for those that
// this program reads (Configuration's, HdfsConfiguration's and YarnConfiguration's
// deprecations). Properties are kept under the present one, as Hadoop does, so that of two
// names of one property the one that is read later counts.
var renamed = map[string]string{
	"fs.default.name":                 "fs.defaultFS",
	"dfs.block.size":                  "dfs.blocksize",
	"dfs.federation.nameservices":     "dfs.nameservices",
	"dfs.socket.timeout":              "dfs.client.socket-timeout",
	"dfs.write.packet.size":           "dfs.client-write-packet-size",
	"dfs.encryption.key.provider.uri": "hadoop.security.key.provider.path",
	"io.bytes.per.checksum":           "dfs.bytes-per-checksum",
}

// current returns the present name of a property.
func current(name string) string {
	if now, ok := renamed[name]; ok {
		return now
	}
	return name
}
