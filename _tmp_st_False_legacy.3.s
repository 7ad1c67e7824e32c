	.file	"<string>"
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
.LCPI0_0:
	.long	0
	.long	12544
	.long	25088
	.long	37632
	.long	50176
	.long	62720
	.long	75264
	.long	87808
	.long	100352
	.long	112896
	.long	125440
	.long	137984
	.long	150528
	.long	163072
	.long	175616
	.long	188160
.LCPI0_1:
	.long	200704
	.long	213248
	.long	225792
	.long	238336
	.long	250880
	.long	263424
	.long	275968
	.long	288512
	.long	301056
	.long	313600
	.long	326144
	.long	338688
	.long	351232
	.long	363776
	.long	376320
	.long	388864
.LCPI0_2:
	.long	401408
	.long	413952
	.long	426496
	.long	439040
	.long	451584
	.long	464128
	.long	476672
	.long	489216
	.long	501760
	.long	514304
	.long	526848
	.long	539392
	.long	551936
	.long	564480
	.long	577024
	.long	589568
.LCPI0_3:
	.long	602112
	.long	614656
	.long	627200
	.long	639744
	.long	652288
	.long	664832
	.long	677376
	.long	689920
	.long	702464
	.long	715008
	.long	727552
	.long	740096
	.long	752640
	.long	765184
	.long	777728
	.long	790272
	.text
	.globl	r_kernel
	.p2align	4
	.type	r_kernel,@function
r_kernel:
	addq	$960, %rsi
	xorl	%eax, %eax
	vmovaps	.LCPI0_0(%rip), %zmm0
	vmovaps	.LCPI0_1(%rip), %zmm1
	vmovaps	.LCPI0_2(%rip), %zmm2
	vmovaps	.LCPI0_3(%rip), %zmm3
	.p2align	4
.LBB0_1:
	movq	%rsi, %rcx
	movq	%rdi, %rdx
	xorl	%r8d, %r8d
	.p2align	4
.LBB0_2:
	movq	%rcx, %r9
	xorl	%r10d, %r10d
	.p2align	4
.LBB0_3:
	leaq	(%rdx,%r10), %r11
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	(%r11,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -960(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	(%r11,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -896(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	(%r11,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -832(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	(%r11,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -768(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	4(%r11,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -704(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	4(%r11,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -640(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	4(%r11,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -576(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	4(%r11,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -512(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	8(%r11,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -448(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	8(%r11,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -384(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	8(%r11,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -320(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	8(%r11,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -256(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	12(%r11,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -192(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	12(%r11,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -128(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	12(%r11,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -64(%r9)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	12(%r11,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, (%r9)
	addq	$16, %r10
	addq	$1024, %r9
	cmpq	$224, %r10
	jne	.LBB0_3
	incq	%r8
	addq	$224, %rdx
	addq	$14336, %rcx
	cmpq	$56, %r8
	jne	.LBB0_2
	incq	%rax
	addq	$802816, %rdi
	addq	$802816, %rsi
	cmpq	$16, %rax
	jne	.LBB0_1
	vzeroupper
	retq
.Lfunc_end0:
	.size	r_kernel, .Lfunc_end0-r_kernel

	.section	".note.GNU-stack","",@progbits
