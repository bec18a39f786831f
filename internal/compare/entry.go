// Package compare owns the question whether a live object is in step with its desired form (DESIGN.md §2.4). It is pure:
// no I/O, no clock, no client. What it can not decide from the values it is given, it says; the engine then asks the API
// server once and passes the answer in.
package compare

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/lockstep-cd/lockstep/internal/manifest"
	"github.com/lockstep-cd/lockstep/internal/manifest/ownership"
)

// Manager is the field manager that Lockstep writes as.
const Manager = manifest.FieldManager

// EntryHash identifies our own entry in metadata.managedFields: the set of fields we own. The API server takes a field
// out of it as soon as anybody else changes that field, so an equal hash says that nothing we declared was touched. Empty
// when there is no such entry, and when a replacement of ours was not taken over, since a part of our fields is elsewhere.
func EntryHash(fields []metav1.ManagedFieldsEntry) string {
	entry := applied(fields, Manager)
	if entry == nil || slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == ownership.Replacer }) {
		return ""
	}
	sum := sha256.Sum256(entry.FieldsV1.GetRawBytes())
	return hex.EncodeToString(sum[:12])
}

// Owned is the set of fields that manager has applied; nil when there is none.
func Owned(fields []metav1.ManagedFieldsEntry, manager string) (*fieldpath.Set, error) {
	entry := applied(fields, manager)
	if entry == nil {
		return nil, nil
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", manager, err)
	}
	return set, nil
}

func applied(fields []metav1.ManagedFieldsEntry, manager string) *metav1.ManagedFieldsEntry {
	for i := range fields {
		f := &fields[i]
		if f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" && f.FieldsV1 != nil {
			return f
		}
	}
	return nil
}
