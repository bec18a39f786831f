package addons

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// provisioner is the name of our CSI driver and of the classes that it serves.
	provisioner = "volumes.dev.lockstep"
	className   = "standard"
	// annotations by which the controller manager and the scheduler speak with provisioners
	annProvisioner   = "volume.kubernetes.io/storage-provisioner"
	annProvisionedBy = "pv.kubernetes.io/provisioned-by"
	annSelectedNode  = "volume.kubernetes.io/selected-node"
)

// createStorage makes the default class and the driver. attachRequired is false:
// there is no machine to attach a volume to, so nothing waits for it.
func createStorage(ctx context.Context, client kubernetes.Interface) error {
	reclaim, mode, yes, no := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate, true, false
	class := &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: className, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:          provisioner,
		ReclaimPolicy:        &reclaim,
		VolumeBindingMode:    &mode,
		AllowVolumeExpansion: &yes,
	}
	_, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("storage class %s: create: %w", className, err)
	}
	driver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: provisioner},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: &no},
	}
	_, err = client.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("CSI driver %s: create: %w", provisioner, err)
	}
	return nil
}

type volumes struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
}

func newVolumes(client kubernetes.Interface, factory informers.SharedInformerFactory) *volumes {
	return &volumes{
		client:  client,
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
	}
}

// syncClaim makes the volume that a claim asks for; the controller manager binds the
// two. A bound claim that grows gets the size that it asks for.
func (v *volumes) syncClaim(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("claim %s: key: %w", key, err)
	}
	claim, err := v.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return err
	}
	if claim.Annotations[annProvisioner] != provisioner || claim.DeletionTimestamp != nil {
		return nil
	}
	if claim.Spec.VolumeName != "" {
		return v.grow(ctx, claim)
	}
	if claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := v.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return err
	}
	late := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if late && claim.Annotations[annSelectedNode] == "" {
		return nil
	}
	_, err = v.client.CoreV1().PersistentVolumes().Create(ctx, volumeFor(claim, class), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annProvisionedBy: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			PersistentVolumeReclaimPolicy: reclaim,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
				ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: provisioner, VolumeHandle: name},
			},
		},
	}
}

func (v *volumes) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	have, ok := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || !ok || want.Cmp(have) <= 0 {
		return nil
	}
	volume, err := v.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	volume = volume.DeepCopy()
	volume.Spec.Capacity[corev1.ResourceStorage] = want
	if _, err := v.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim = claim.DeepCopy()
	claim.Status.Capacity[corev1.ResourceStorage] = want
	_, err = v.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

// syncVolume removes a volume whose claim is gone, as its reclaim policy says.
func (v *volumes) syncVolume(ctx context.Context, name string) error {
	volume, err := v.volumes.Get(name)
	if err != nil {
		return err
	}
	ours := volume.Annotations[annProvisionedBy] == provisioner
	if !ours || volume.DeletionTimestamp != nil || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	return v.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})
}
