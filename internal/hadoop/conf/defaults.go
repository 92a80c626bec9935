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

// deprecated gives the old name of a property, which is read where the new one
// is not set.
var deprecated = map[string]string{
	"fs.defaultFS":     "fs.default.name",
	"dfs.blocksize":    "dfs.block.size",
	"dfs.nameservices": "dfs.federation.nameservices",
}
