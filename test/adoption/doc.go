// Package adoption has the tests of living beside Argo CD (issue 3): a real Argo CD and Lockstep, as processes beside a
// local cluster, hand applications to each other. No pod restarts, nothing is deleted, and each finds in step what the
// other leaves.
//
// It has no code besides tests. They may depend on everything.
package adoption
