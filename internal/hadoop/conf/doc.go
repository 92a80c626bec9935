// Package conf reads a Hadoop client's configuration: core-site.xml,
// hdfs-site.xml and yarn-site.xml of the directory HADOOP_CONF_DIR, with the
// defaults that matter here.
//
// The rules are those of org.apache.hadoop.conf.Configuration: a later file
// wins over an earlier one unless the earlier one said <final>true</final>;
// ${name} in a value stands for another property, ${env.NAME} for an
// environment variable, with ${env.NAME:-default} (unset or empty) and
// ${env.NAME-default} (unset); what cannot be substituted stays as it is.
// XInclude is not followed: a file that uses it gives a warning.
package conf
