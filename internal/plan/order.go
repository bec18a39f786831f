package plan

import "strings"

// kindOrder is the order of kinds within a wave (the contract's §2.4); a kind that is not listed comes last.
func kindOrder() []string {
	return strings.Fields(`Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget
		ServiceAccount Secret SecretList ConfigMap StorageClass PersistentVolume PersistentVolumeClaim
		CustomResourceDefinition ClusterRole ClusterRoleList ClusterRoleBinding ClusterRoleBindingList Role RoleList
		RoleBinding RoleBindingList Service DaemonSet Pod ReplicationController ReplicaSet Deployment
		HorizontalPodAutoscaler StatefulSet Job CronJob IngressClass Ingress APIService`)
}

// ranks maps a kind to its place; made once per plan.
func ranks() map[string]int {
	list := kindOrder()
	m := make(map[string]int, len(list))
	for i, kind := range list {
		m[kind] = i + 1
	}
	return m
}

func rank(m map[string]int, kind string) int {
	if r, ok := m[kind]; ok {
		return r
	}
	return len(m) + 1
}
