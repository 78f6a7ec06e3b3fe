"""What tests/python/architectures.py looks at: classes of transformers, settings that make them small, and what goes in."""

import torch

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=99, max_position_embeddings=64)
DECODER = dict(SMALL, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2, use_cache=False)
BOTH = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    decoder_start_token_id=2, use_cache=False)
IMAGE = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)
MODELS = {}


def add(name, config, model, settings, inputs):
    MODELS[name] = (config, model, settings, inputs)


def words():
    return {"input_ids": torch.randint(3, 99, (2, 16))}


def masked():
    return dict(words(), attention_mask=torch.tensor([[1] * 16, [1] * 11 + [0] * 5]))


def pairs():
    return dict(words(), decoder_input_ids=torch.randint(3, 99, (2, 8)))


def images(size=32):
    return lambda: {"pixel_values": torch.randn(2, 3, size, size)}


add("bert", "BertConfig", "BertForMaskedLM", SMALL, masked)
add("bert_cls", "BertConfig", "BertForSequenceClassification", SMALL, masked)
add("roberta", "RobertaConfig", "RobertaForMaskedLM", SMALL, masked)
add("distilbert", "DistilBertConfig", "DistilBertForMaskedLM", dict(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
    max_position_embeddings=64), masked)
add("albert", "AlbertConfig", "AlbertForMaskedLM", dict(SMALL, embedding_size=16), masked)
add("electra", "ElectraConfig", "ElectraForTokenClassification", dict(SMALL, embedding_size=16), masked)
add("deberta", "DebertaConfig", "DebertaForMaskedLM", dict(SMALL, relative_attention=True, pos_att_type=["c2p", "p2c"]), masked)
add("deberta_v2", "DebertaV2Config", "DebertaV2ForMaskedLM", dict(SMALL, relative_attention=True, pos_att_type=["c2p", "p2c"],
    position_buckets=8), masked)
add("mpnet", "MPNetConfig", "MPNetForMaskedLM", SMALL, masked)
add("xlnet", "XLNetConfig", "XLNetLMHeadModel", dict(vocab_size=99, d_model=32, n_layer=2, n_head=4, d_inner=64), words)
add("gpt2", "GPT2Config", "GPT2LMHeadModel", dict(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4, use_cache=False), words)
add("gpt2_mask", "GPT2Config", "GPT2LMHeadModel", dict(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4, use_cache=False),
    masked)
add("gpt_neo", "GPTNeoConfig", "GPTNeoForCausalLM", dict(vocab_size=99, max_position_embeddings=64, hidden_size=32, num_layers=2,
    attention_types=[[["global", "local"], 1]], num_heads=4, window_size=4, use_cache=False), words)
add("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", dict(SMALL, use_cache=False), words)
add("gptj", "GPTJConfig", "GPTJForCausalLM", dict(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4, rotary_dim=4,
    use_cache=False), words)
add("opt", "OPTConfig", "OPTForCausalLM", dict(SMALL, ffn_dim=64, word_embed_proj_dim=32, use_cache=False, pad_token_id=0), masked)
add("bloom", "BloomConfig", "BloomForCausalLM", dict(vocab_size=99, hidden_size=32, n_layer=2, n_head=4, use_cache=False), masked)
for name, word in [("llama", "Llama"), ("mistral", "Mistral"), ("qwen2", "Qwen2"), ("qwen3", "Qwen3"), ("gemma", "Gemma"), ("gemma2",
    "Gemma2"), ("phi3", "Phi3"), ("olmo", "Olmo"), ("olmo2", "Olmo2"), ("granite", "Granite"), ("starcoder2", "Starcoder2"), ("cohere",
    "Cohere"), ("cohere2", "Cohere2"), ("glm", "Glm"), ("smollm3", "SmolLM3"), ("nemotron", "Nemotron"), ("stablelm", "StableLm"),
    ("persimmon", "Persimmon"), ("ernie4_5", "Ernie4_5"), ("exaone4", "Exaone4"), ("helium", "Helium"), ("seed_oss", "SeedOss"), ("arcee",
    "Arcee"), ("diffllama", "DiffLlama"), ("hunyuan", "HunYuanDenseV1"), ("apertus", "Apertus")]:
    settings = dict(DECODER)
    if name in ("gemma", "gemma2", "qwen3", "glm", "helium", "smollm3", "exaone4", "hunyuan", "ernie4_5"):
        settings["head_dim"] = 8
    if name in ("cohere2", "exaone4", "gemma2"):
        settings["sliding_window"] = 8
    add(name, word + "Config", word + "ForCausalLM", settings, masked)
add("phi", "PhiConfig", "PhiForCausalLM", DECODER, masked)
add("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", dict(DECODER, head_dim=8, sliding_window=8), masked)
add("falcon", "FalconConfig", "FalconForCausalLM", dict(SMALL, use_cache=False, new_decoder_architecture=True, num_kv_heads=2), masked)
add("mpt", "MptConfig", "MptForCausalLM", dict(vocab_size=99, d_model=32, n_layers=2, n_heads=4, max_seq_len=64, use_cache=False), masked)
add("mamba", "MambaConfig", "MambaForCausalLM", dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4, use_cache=False),
    words)
add("mamba2", "Mamba2Config", "Mamba2ForCausalLM", dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4, num_heads=8,
    head_dim=8, n_groups=1, chunk_size=8, use_cache=False), words)
add("lfm2", "Lfm2Config", "Lfm2ForCausalLM", dict(DECODER, layer_types=["conv", "full_attention"], block_multiple_of=8), words)
add("rwkv", "RwkvConfig", "RwkvForCausalLM", dict(vocab_size=99, hidden_size=32, attention_hidden_size=32, num_hidden_layers=2,
    context_length=64, use_cache=False), words)
add("bart", "BartConfig", "BartForConditionalGeneration", BOTH, pairs)
add("mbart", "MBartConfig", "MBartForConditionalGeneration", BOTH, pairs)
add("pegasus", "PegasusConfig", "PegasusForConditionalGeneration", BOTH, pairs)
add("marian", "MarianConfig", "MarianMTModel", dict(BOTH), pairs)
add("m2m", "M2M100Config", "M2M100ForConditionalGeneration", BOTH, pairs)
add("whisper", "WhisperConfig", "WhisperForConditionalGeneration", dict(BOTH, num_mel_bins=16, max_source_positions=30,
    max_target_positions=32), lambda: {"input_features": torch.randn(2, 16, 60), "decoder_input_ids": torch.randint(3, 99, (2, 8))})
add("wav2vec2", "Wav2Vec2Config", "Wav2Vec2ForCTC", dict(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3), num_conv_pos_embeddings=16,
    num_conv_pos_embedding_groups=4, num_feat_extract_layers=3), lambda: {"input_values": torch.randn(2, 800)})
add("hubert", "HubertConfig", "HubertForCTC", dict(vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3), num_conv_pos_embeddings=16,
    num_conv_pos_embedding_groups=4, num_feat_extract_layers=3), lambda: {"input_values": torch.randn(2, 800)})
add("speech_to_text", "Speech2TextConfig", "Speech2TextForConditionalGeneration", dict(BOTH, input_feat_per_channel=16, conv_channels=32,
    max_source_positions=64, max_target_positions=32), lambda: {"input_features": torch.randn(2, 40, 16),
    "decoder_input_ids": torch.randint(3, 99, (2, 8))})
add("ast", "ASTConfig", "ASTForAudioClassification", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    patch_size=8, max_length=32, num_mel_bins=16, frequency_stride=4, time_stride=4), lambda: {"input_values": torch.randn(2, 32, 16)})
add("vit", "ViTConfig", "ViTForImageClassification", IMAGE, images())
add("deit", "DeiTConfig", "DeiTForImageClassification", IMAGE, images())
add("swinv2", "Swinv2Config", "Swinv2ForImageClassification", dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2,
    4], window_size=4), images())
add("donut", "DonutSwinConfig", "DonutSwinModel", dict(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4],
    window_size=4), images())
add("convnext", "ConvNextConfig", "ConvNextForImageClassification", dict(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2), images())
add("convnextv2", "ConvNextV2Config", "ConvNextV2ForImageClassification", dict(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2),
    images())
add("dinov2", "Dinov2Config", "Dinov2ForImageClassification", IMAGE, images())
add("segformer", "SegformerConfig", "SegformerForSemanticSegmentation", dict(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2],
    hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=32,
    num_labels=5), images(64))
add("mobilevit", "MobileViTConfig", "MobileViTForImageClassification", dict(image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8,
    8, 16, 16, 24, 24, 32]), images(64))
add("mobilevitv2", "MobileViTV2Config", "MobileViTV2ForImageClassification", dict(image_size=64, width_multiplier=0.25), images(64))
add("levit", "LevitConfig", "LevitForImageClassification", dict(image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[1, 2, 3],
    depths=[1, 1, 1], key_dim=[8, 8, 8]), images(64))
add("poolformer", "PoolFormerConfig", "PoolFormerForImageClassification", dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    images(64))
add("resnet", "ResNetConfig", "ResNetForImageClassification", dict(embedding_size=8, hidden_sizes=[16, 32], depths=[1, 1]), images())
add("regnet", "RegNetConfig", "RegNetForImageClassification", dict(embedding_size=8, hidden_sizes=[16, 32, 32, 32], depths=[1, 1, 1, 1],
    groups_width=8), images())
add("efficientnet", "EfficientNetConfig", "EfficientNetForImageClassification", dict(image_size=64, width_coefficient=0.3,
    depth_coefficient=0.3, hidden_dim=384), images(64))
add("bit", "BitConfig", "BitForImageClassification", dict(embedding_size=32, hidden_sizes=[32, 64, 64, 64], depths=[1, 1, 1, 1],
    num_groups=8), images(64))
add("focalnet", "FocalNetConfig", "FocalNetForImageClassification", dict(image_size=32, embed_dim=16, hidden_sizes=[16, 32], depths=[1, 1],
    focal_levels=[2, 2], focal_windows=[3, 3]), images())
add("pvt", "PvtConfig", "PvtForImageClassification", dict(image_size=64, num_encoder_blocks=2, hidden_sizes=[16, 32], depths=[1, 1],
    sequence_reduction_ratios=[2, 1], patch_sizes=[4, 2], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2]), images(64))
add("clip", "CLIPConfig", "CLIPModel", dict(text_config=dict(SMALL, projection_dim=16, eos_token_id=98), vision_config=dict(IMAGE,
    projection_dim=16), projection_dim=16), lambda: {"input_ids": torch.randint(3, 99, (2, 16)), "pixel_values": torch.randn(2, 3, 32,
    32)})
add("siglip", "SiglipConfig", "SiglipModel", dict(text_config=dict(SMALL, projection_size=32), vision_config=dict(IMAGE)),
    lambda: {"input_ids": torch.randint(3, 99, (2, 16)), "pixel_values": torch.randn(2, 3, 32, 32)})
add("yolos", "YolosConfig", "YolosForObjectDetection", dict(IMAGE, image_size=[32, 32], num_detection_tokens=5), images())
add("dpt", "DPTConfig", "DPTForDepthEstimation", dict(IMAGE, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8,
    16, 16, 16], fusion_hidden_size=16, reassemble_factors=[4, 2, 1, 0.5], is_hybrid=False), images())
add("depth_anything", "DepthAnythingConfig", "DepthAnythingForDepthEstimation", dict(), images(56))
add("fnet", "FNetConfig", "FNetForMaskedLM", SMALL, words)
add("funnel", "FunnelConfig", "FunnelForMaskedLM", dict(vocab_size=99, block_sizes=[1, 1], num_decoder_layers=1, d_model=32, n_head=4,
    d_head=8, d_inner=64), masked)
add("bigbird", "BigBirdConfig", "BigBirdForMaskedLM", dict(SMALL, attention_type="original_full"), masked)
add("perceiver", "PerceiverConfig", "PerceiverForMaskedLM", dict(num_latents=8, d_latents=32, d_model=32, num_blocks=1,
    num_self_attends_per_block=1, num_self_attention_heads=4, num_cross_attention_heads=4, vocab_size=99, max_position_embeddings=64),
    lambda: {"inputs": torch.randint(3, 99, (2, 16))})
add("layoutlm", "LayoutLMConfig", "LayoutLMForTokenClassification", SMALL, lambda: dict(masked(), bbox=torch.randint(0, 500, (2, 16,
    4)).cumsum(-1) // 4))
add("esm", "EsmConfig", "EsmForMaskedLM", dict(SMALL, pad_token_id=0, mask_token_id=4, position_embedding_type="rotary"), masked)
add("roformer", "RoFormerConfig", "RoFormerForMaskedLM", SMALL, masked)
add("squeezebert", "SqueezeBertConfig", "SqueezeBertForMaskedLM", dict(SMALL, embedding_size=32, q_groups=2, k_groups=2, v_groups=2,
    post_attention_groups=1, intermediate_groups=2, output_groups=2), masked)
add("mobilebert", "MobileBertConfig", "MobileBertForMaskedLM", dict(SMALL, embedding_size=16, true_hidden_size=16,
    intra_bottleneck_size=16, hidden_size=32), masked)
add("convbert", "ConvBertConfig", "ConvBertForMaskedLM", dict(SMALL, embedding_size=16), masked)
add("ibert", "IBertConfig", "IBertForMaskedLM", SMALL, masked)
add("modernbert", "ModernBertConfig", "ModernBertForMaskedLM", dict(SMALL, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1,
    sep_token_id=2, local_attention=8), masked)
add("patchtst", "PatchTSTConfig", "PatchTSTForPrediction", dict(num_input_channels=2, context_length=32, patch_length=8, patch_stride=8,
    num_hidden_layers=2, d_model=16, num_attention_heads=4, ffn_dim=32, prediction_length=8), lambda: {"past_values": torch.randn(2, 32,
    2)})
add("patchtsmixer", "PatchTSMixerConfig", "PatchTSMixerForPrediction", dict(num_input_channels=2, context_length=32, patch_length=8,
    patch_stride=8, d_model=16, prediction_length=8), lambda: {"past_values": torch.randn(2, 32, 2)})
add("timesfm", "TimesFmConfig", "TimesFmModel", dict(hidden_size=32, num_hidden_layers=2, intermediate_size=64, head_dim=8,
    num_attention_heads=4, patch_length=8, horizon_length=8, context_length=32), lambda: {"past_values": torch.randn(2, 32),
    "past_values_padding": torch.zeros(2, 32), "freq": torch.zeros(2, 1, dtype=torch.int64)})
add("videomae", "VideoMAEConfig", "VideoMAEForVideoClassification", dict(IMAGE, num_frames=4, tubelet_size=2, decoder_num_hidden_layers=1),
    lambda: {"pixel_values": torch.randn(2, 4, 3, 32, 32)})
add("timesformer", "TimesformerConfig", "TimesformerForVideoClassification", dict(IMAGE, num_frames=4),
    lambda: {"pixel_values": torch.randn(2, 4, 3, 32, 32)})
add("vivit", "VivitConfig", "VivitForVideoClassification", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=64, image_size=32, num_frames=4, tubelet_size=[2, 8, 8]), lambda: {"pixel_values": torch.randn(2, 4, 3, 32, 32)})
add("hiera", "HieraConfig", "HieraForImageClassification", dict(image_size=[64, 64], embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 4,
    8], patch_stride=[4, 4]), images(64))
add("tapas", "TapasConfig", "TapasModel", SMALL, lambda: dict(masked(), token_type_ids=torch.randint(0, 2, (2, 16, 7))))
add("bamba", "BambaConfig", "BambaForCausalLM", dict(DECODER, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8, mamba_d_state=4,
    mamba_chunk_size=8, mamba_n_groups=1), words)
add("codegen", "CodeGenConfig", "CodeGenForCausalLM", dict(vocab_size=99, n_positions=64, n_ctx=64, n_embd=32, n_layer=2, n_head=4,
    rotary_dim=4, use_cache=False), words)
add("speecht5", "SpeechT5Config", "SpeechT5ForSpeechToText", dict(vocab_size=99, hidden_size=32, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, conv_dim=(32, 32), conv_stride=(5, 2),
    conv_kernel=(10, 3), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, num_feat_extract_layers=2, use_cache=False),
    lambda: {"input_values": torch.randn(2, 400), "decoder_input_ids": torch.randint(3, 99, (2, 8))})
