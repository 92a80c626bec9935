package hdfs

import (
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/write"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

func TestWriteOptions(t *testing.T) {
	const (
		crc32c = wire.ChecksumTypeProto_CHECKSUM_CRC32C
		crc32  = wire.ChecksumTypeProto_CHECKSUM_CRC32
		on     = "dfs.client.block.write.replace-datanode-on-failure."
	)
	log := logrus.New()
	log.SetOutput(t.Output())
	for name, c := range map[string]struct {
		set  map[string]string
		want func(*write.Options) // nil: refused
	}{
		"defaults":              {nil, func(*write.Options) {}},
		"replication":           {map[string]string{"dfs.replication": "5"}, func(o *write.Options) { o.Replication = 5 }},
		"block size":            {map[string]string{"dfs.blocksize": "64m"}, func(o *write.Options) { o.BlockSize = 64 << 20 }},
		"timeout":               {map[string]string{"dfs.client.socket-timeout": "7000"}, func(o *write.Options) { o.Timeout = 7 * time.Second }},
		"CRC32":                 {map[string]string{"dfs.checksum.type": "CRC32"}, func(o *write.Options) { o.Checksum.Type = crc32 }},
		"no checksums":          {map[string]string{"dfs.checksum.type": "NULL"}, func(*write.Options) {}},
		"an unknown checksum":   {map[string]string{"dfs.checksum.type": "MD5"}, nil},
		"larger chunks":         {map[string]string{"dfs.bytes-per-checksum": "4096"}, func(o *write.Options) { o.Checksum.Bytes = 4096 }},
		"chunks too small":      {map[string]string{"dfs.bytes-per-checksum": "16"}, nil},
		"chunks too large":      {map[string]string{"dfs.bytes-per-checksum": "1048576"}, nil},
		"chunks across blocks":  {map[string]string{"dfs.bytes-per-checksum": "1000"}, nil},
		"never":                 {map[string]string{on + "policy": "NEVER"}, func(o *write.Options) { o.Replace.Policy = write.ReplaceNever }},
		"always":                {map[string]string{on + "policy": "always"}, func(o *write.Options) { o.Replace.Policy = write.ReplaceAlways }},
		"not enabled":           {map[string]string{on + "enable": "false", on + "policy": "ALWAYS"}, func(o *write.Options) { o.Replace.Policy = write.ReplaceNever }},
		"an unknown policy":     {map[string]string{on + "policy": "SOMETIMES"}, nil},
		"best effort":           {map[string]string{on + "best-effort": "true"}, func(*write.Options) {}},
		"not with best effort":  {map[string]string{on + "best-effort": "false"}, func(o *write.Options) { o.Replace.Strict = true }},
		"few are enough":        {map[string]string{on + "min-replication": "2"}, func(o *write.Options) { o.Replace.Strict, o.Replace.Least = true, 2 }},
		"few, with best effort": {map[string]string{on + "min-replication": "2", on + "best-effort": "true"}, func(o *write.Options) { o.Replace.Least = 2 }},
		"few, without":          {map[string]string{on + "min-replication": "1", on + "best-effort": "false"}, func(o *write.Options) { o.Replace.Strict, o.Replace.Least = true, 1 }},
		"few, and none":         {map[string]string{on + "min-replication": "-1"}, func(*write.Options) {}},
		"few, and no number":    {map[string]string{on + "min-replication": "few"}, nil},
		"a replication of none": {map[string]string{"dfs.replication": "many"}, nil},
	} {
		got, err := writeOptions(conf.New(c.set), log)
		if c.want == nil {
			if err == nil {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		want := write.Options{Replication: 3, BlockSize: 128 << 20, Timeout: time.Minute, Checksum: write.Checksum{Type: crc32c, Bytes: 512}}
		c.want(&want)
		if err != nil || got.Replication != want.Replication || got.BlockSize != want.BlockSize || got.Timeout != want.Timeout ||
			got.Checksum != want.Checksum || got.Replace != want.Replace {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}
