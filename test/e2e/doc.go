// Package e2e runs whole jobs on real parts: yarn-submit as users call it, a
// real YARN and HDFS (test/testcluster), real TensorFlow (test/pyenv).
// There is nothing but tests in it.
package e2e
